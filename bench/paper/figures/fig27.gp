load here."/common.gp"
set xlabel "iteration of bfs"; set ylabel "bytes moved"; set logscale y
plot for [method in "DR CO FC"] "< awk -F, -v m=".method." 'NR==1 || ($1==\"bfs\" && $2==m)' ".folder."/fig27.csv" \
     using 3:6 with linespoints title method
