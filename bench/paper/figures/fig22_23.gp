load here."/common.gp"
set xlabel "bytes of an index entry"; set logscale x 2
set ylabel "remote operations of a BFS"; set y2label "bytes in the pool"; set ytics nomirror; set y2tics
plot folder."/fig22.csv" using 1:3 with linespoints title "operations", "" using 1:2 axes x1y2 with linespoints title "memory"
