# Every case that the README names exists, and every case is named (by itself or by a pattern).
cd "$SHARE/../tests/cli"
named=$(grep '^|' README.md | grep -v 'cases/NAME' | grep -o '`[a-z0-9-]*`' | tr -d '`' | sort -u)
for name in $named; do
  [ -e "cases/$name.cmd" ] || [ -e "../$name" ] || echo "no such case: $name"
done
for file in cases/*.cmd; do
  name=$(basename "$file" .cmd)
  case $name in
    help* | version | usage-* | stdout-* | round-trip* | sizes* | fit* | inspect* | doctor | tune | completion-* | man-page | progress-*) continue ;;
  esac
  echo "$named" | grep -qx -- "$name" || echo "not in the README: $name"
done
