package kube

// Note counts one thing that could not be told as it is.
type Note struct {
	Count    int
	Subject  string // of how many
	Handling string // with it
	// Skipped is whether Count is of pods that are not told at all.
	Skipped bool
	// AffectsPlacement is whether a placement may differ for it: what was asked for and is not
	// told would have kept work off a node, or on one.
	AffectsPlacement bool
}

// Report is everything that could not be told as it is, in the order in which it
// was first met.
type Report struct {
	List  []Note
	index map[[2]string]int
}

// Add counts n more.
func (n *Report) Add(note Note) {
	if note.Count == 0 {
		return
	}
	key := [2]string{note.Subject, note.Handling}
	if i, ok := n.index[key]; ok {
		n.List[i].Count += note.Count
		return
	}
	if n.index == nil {
		n.index = map[[2]string]int{}
	}
	n.index[key] = len(n.List)
	n.List = append(n.List, note)
}

func (n *Report) info(what, done string) { n.Add(Note{Count: 1, Subject: what, Handling: done}) }
func (n *Report) warn(what, done string) {
	n.Add(Note{Count: 1, Subject: what, Handling: done, AffectsPlacement: true})
}

func (n *Report) skip(what string) {
	n.Add(Note{Count: 1, Subject: what, Handling: "left out", Skipped: true})
}

// AffectingPlacement lists the notes for which a placement may differ.
func (n *Report) AffectingPlacement() []Note {
	var list []Note
	for _, note := range n.List {
		if note.AffectsPlacement {
			list = append(list, note)
		}
	}
	return list
}
