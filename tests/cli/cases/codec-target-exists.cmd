# Kept, unless --overwrite (-f, --force) says otherwise; a link's file is replaced, not the link.
seq 1000 > text
echo kept > text.glyd
glyd compress text || echo "exit $?"
cat text.glyd
glyd compress text -f -q
glyd test text.glyd -q
echo old > real
ln -s real link
glyd compress text -o link || echo "exit $?"
glyd compress text -o link --force -q
readlink link
glyd test real -q
ln -s nowhere dangling
glyd compress text -o dangling -f || echo "exit $?"
mkdir folder
glyd compress text -o folder -f || echo "exit $?"
glyd compress text -o missing/place || echo "exit $?"
ls
