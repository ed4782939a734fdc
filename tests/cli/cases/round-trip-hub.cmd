# A repo id: symbolic links into the cache's blobs are fine.
HF_HUB_CACHE=$PWD/hub; export HF_HUB_CACHE
make-input hub-cache hub
glyd pack org/tiny packed
glyd verify packed --source org/tiny
glyd unpack packed back
diff -r hub/models--org--tiny/snapshots/0123456789abcdef0123456789abcdef01234567 back
