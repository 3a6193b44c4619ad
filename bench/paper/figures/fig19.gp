load here."/common.gp"
set style data histogram; set style histogram clustered gap 1; set style fill solid 0.7
set ylabel "bytes of cache of a compute node"; set logscale y
plot for [key in "fam-graph,1 dmg,1 dmg,4"] \
     "< awk -F, -v k=".key." 'NR==1 || ($2\",\"$3==k)' ".folder."/fig19.csv" using 4:xtic(1) title key
