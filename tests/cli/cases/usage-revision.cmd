HF_HUB_CACHE=$PWD/hub; export HF_HUB_CACHE
make-input hub-cache hub
glyd pack org/tiny out --revision v9
