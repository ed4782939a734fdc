# Long runs of zeros become holes, also at the end; not with --no-sparse; never through standard output, where others write too.
truncate -s 5000000 holes
seq 1000 >> holes
truncate -s 9000001 holes
glyd compress holes -q
glyd decompress holes.glyd -o back -q
cmp holes back
[ $(stat -c %b back) -lt 1000 ] && echo "holes"
glyd decompress holes.glyd -o full --no-sparse -q
cmp holes full
[ $(stat -c %b full) -gt 15000 ] && echo "no holes"
echo head > appended
glyd decompress holes.glyd -c >> appended
(echo head; cat holes) | cmp - appended
truncate -s 0 all
glyd decompress holes.glyd -o all -f -q
cmp holes all
