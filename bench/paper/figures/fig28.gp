load here."/common.gp"
set xlabel "threads"; set ylabel "most loaded thread by the mean"; set logscale x 2
plot for [step in "+Per-Thread +Re-Schedule"] "< awk -F, -v s=".step." 'NR==1 || ($2==s)' ".folder."/fig28.csv" \
     using 1:5 with linespoints title step
