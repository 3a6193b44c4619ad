load here."/common.gp"
set style data histogram; set style histogram clustered gap 1; set style fill solid 0.7
set logscale y; set ylabel "remote operations"
plot for [step in "BASE +OPT-IDX +OPT-EDGE +EMBED"] \
     "< awk -F, -v s=".step." 'NR==1 || ($2==s)' ".folder."/fig24.csv" using 3:xtic(1) title step
