# The model that the repository ships.
glyd pack "$MODELS/tiny-qwen3" packed -q
glyd verify packed -q
glyd unpack packed back -q
diff -r "$MODELS/tiny-qwen3" back
