package replication

// PolicyOp is what ChangePolicy does.
type PolicyOp uint8

// The operations.
const (
	OpShadow   PolicyOp = iota + 1 // Version runs beside the active one
	OpUnshadow                     // nothing does
	OpActivate                     // Version decides; what did is kept for rollback
	OpRollback                     // the previous one decides; what did is kept
	OpUnload                       // Version is forgotten
	OpTrip                         // Version is taken out of service: the previous one decides, or the default
	OpReset                        // Version (or with "" every one) is no longer tripped
)

func (o PolicyOp) String() string {
	names := [...]string{"?", "shadow", "unshadow", "activate", "rollback", "unload", "trip", "reset"}
	if int(o) >= len(names) {
		return names[0]
	}
	return names[o]
}
