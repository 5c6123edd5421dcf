package process

func removeBuilt() {}
