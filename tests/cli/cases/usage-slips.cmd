# Slips get a message that names what was meant.
make-input model m
echo hello > log.txt
for words in "log.txt" "m" "compress log.txt -9" "compress log.txt --unit 100KB" "pack m out -t -1" "inspect log.txt" "list log.txt" \
  "cat log.txt --range 10:5" "fit m --gpu 24" "fit m --gpu A100" "verify m" "pack m a/b/out"; do
  echo "glyd $words" >&2
  glyd $words || echo "exit $?"
done
glyd compress log.txt -q
glyd inspect log.txt.glyd || echo "exit $?"
glyd compress - -o u.glyd < log.txt | sed 's/:.*//'
glyd test - < u.glyd | sed 's/of content.*//'
ln -s nowhere dangling
glyd pack m packed -q
for words in "PACK m out" "--Version" "pack dangling out" "verify dangling" "list packed"; do
  echo "glyd $words" >&2
  glyd $words || echo "exit $?"
done
