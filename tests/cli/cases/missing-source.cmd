glyd pack no-such-model out
