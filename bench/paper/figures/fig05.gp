load here."/common.gp"
set xlabel "bytes of a read"; set ylabel "share of the reads"
set logscale x 2; set yrange [0:1]; set key bottom right
plot folder."/fig05.csv" using 1:2 with linespoints title "lists apart", "" using 1:3 with linespoints title "embedded"
