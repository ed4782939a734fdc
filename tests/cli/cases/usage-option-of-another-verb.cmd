# An option that another verb has is no typing error.
echo text > file
glyd compress --layout small file || echo "exit $?"
glyd pack --max m out || echo "exit $?"
glyd verify --salvage out || echo "exit $?"
glyd sizes --threds 2 m || echo "exit $?"
