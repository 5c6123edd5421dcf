package policy

// columnNames are the column names of the ABI, by bit.
var columnNames = [...]string{
	"use", "start", "lostWork", "job", "eviction", "mustLeave", "device", "capacity", "place", "label", "annotation",
	"shared", "victim", "fit", "time", "totals", "budget", "relocation", "lookahead",
}

// Names returns the names of the columns in the set, in the order of their bits. It returns
// an empty list for an empty set.
func (c Columns) Names() []string {
	list := []string{}
	for bit, name := range columnNames {
		if c.Has(1 << bit) {
			list = append(list, name)
		}
	}
	return list
}
