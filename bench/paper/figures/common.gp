set terminal svg size 720,400 font "sans,12" background rgb "white"
set output output
set datafile separator ","
set key autotitle columnhead
set grid ytics
