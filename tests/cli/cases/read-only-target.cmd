# requires: setpriv
# Root may write everywhere: without that capability even root meets the permission.
make-input model m
mkdir locked
chmod 555 locked
drop() { if [ "$(id -u)" = 0 ]; then setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search "$@"; else "$@"; fi; }
drop glyd pack m locked/out
