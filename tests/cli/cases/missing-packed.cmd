glyd verify no-such-model
