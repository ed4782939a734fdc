# Every level, by verb and by shortcut, and any decoder reads all of them.
make-input model m
seq 100000 > text
for file in text m/model.safetensors; do
  for level in default max ultra; do
    glyd --$level "$file" -o one.glyd -q
    glyd compress --level $level "$file" -o two.glyd -q
    cmp one.glyd two.glyd
    glyd -d one.glyd -o back -q
    cmp back "$file"
    [ $(stat -c %s one.glyd) -lt $(stat -c %s "$file") ] && echo "$level $file: smaller"
    rm one.glyd two.glyd back
  done
done
