load here."/common.gp"
set xlabel "bytes of a read"; set logscale x 2
set ylabel "million operations a second"; set y2label "GB/s"; set ytics nomirror; set y2tics
plot folder."/fig06.csv" using 1:4 with linespoints title "operations, emulated ConnectX-5", \
     "" using 1:5 axes x1y2 with linespoints title "bandwidth, emulated ConnectX-5", \
     "" using 1:2 with linespoints dashtype 2 title "operations, this machine", \
     "" using 1:3 axes x1y2 with linespoints dashtype 2 title "bandwidth, this machine"
