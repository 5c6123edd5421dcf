package replication

// A PolicyOp is an operation of ChangePolicy.
type PolicyOp uint8

// The operations of ChangePolicy.
const (
	OpShadow   PolicyOp = iota + 1 // run Version as the shadow of the active one
	OpUnshadow                     // run no shadow
	OpActivate                     // activate Version; the active one becomes the previous one
	OpRollback                     // exchange the active and the previous version
	OpUnload                       // delete Version
	OpTrip                         // disable Version: the previous one becomes active, or the default policy
	OpReset                        // enable Version again, or every version if it is ""
	OpTrial                        // let Version and the active one decide in alternate blocks
	OpBlock                        // end a block of the trial, and start the next one
)

// String returns the name of the operation, or "?".
func (o PolicyOp) String() string {
	names := [...]string{"?", "shadow", "unshadow", "activate", "rollback", "unload", "trip", "reset", "trial", "block"}
	if int(o) >= len(names) {
		return names[0]
	}
	return names[o]
}
