# The scripts in share/ are the ones that the program prints.
glyd completion bash | diff - "$SHARE/completions/glyd.bash"
glyd completion zsh | diff - "$SHARE/completions/_glyd"
glyd completion fish | diff - "$SHARE/completions/glyd.fish"
glyd completion bash --json | python3 -c 'import json, sys; print(sorted(json.load(sys.stdin)))'
