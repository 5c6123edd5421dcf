package fsm

// For tests.
const (
	HeldFrom      = heldFrom
	DownSinceFrom = downSinceFrom
	TrialsFrom    = trialsFrom
	MaxUploads    = maxUploads
	UploadIdle    = uploadIdle
)
