make-input model m
sed -i 's/"hidden_size"/"quantization_config": {"quant_method": "gptq"}, "hidden_size"/' m/config.json
glyd pack m out
