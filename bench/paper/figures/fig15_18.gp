load here."/common.gp"
set style data histogram; set style histogram clustered gap 1; set style fill solid 0.7
set logscale y; set ylabel "remote operations"; set xtics rotate by -30
plot for [system in "fam-graph dmg-base dmg"] \
     "< awk -F, -v s=".system." 'NR==1 || ($2==s && ($3==4 || s==\"fam-graph\"))' ".folder."/fig15_18.csv" using 6:xtic(1) title system
