# A file that becomes shorter while it is read in place: a message, and nothing half-written.
make-input large m 16
glyd compress m/model.safetensors -o big.glyd -q
python3 - <<'PY'
import os, signal, subprocess, time
process = subprocess.Popen(["glyd", "decompress", "--salvage", "big.glyd", "-o", "rescued"])
while not os.path.exists(".rescued.glyd-staging") or os.path.getsize(".rescued.glyd-staging") == 0:
    time.sleep(0.0005)
process.send_signal(signal.SIGSTOP)
os.truncate("big.glyd", 5000)
process.send_signal(signal.SIGCONT)
print(process.wait())
PY
ls -A
