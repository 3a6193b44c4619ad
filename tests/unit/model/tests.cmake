# With the measurements that are read for it.
dmg_unit_test(predict SOURCES model/predict.c LINK dmg-cli-predict)
