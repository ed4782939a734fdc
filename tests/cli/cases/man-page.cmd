# requires: groff
# No warnings, and every verb and option of the help pages is in it.
groff -man -Tutf8 -ww "$SHARE/man/glyd.1" > page
verbs=$(glyd --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | sort -u)
for verb in $verbs; do
  [ "$verb" = glyd ] && continue
  grep -q "^\.SS $verb" "$SHARE/man/glyd.1" || echo "no section: $verb"
  for option in $(glyd "$verb" --help | grep -o -- '^  .*--[a-z-]*' | grep -o -- '--[a-z-]*' | sort -u); do
    sed 's/\\-/-/g' "$SHARE/man/glyd.1" | grep -q -- "$option" || echo "not in the page: $verb $option"
  done
done
