package kube

// Note counts one thing that could not be told as it is.
type Note struct {
	Count int
	What  string // of how many
	Done  string // with it
	// LeftOut is whether Count is of pods that are not told at all.
	LeftOut bool
	// Hard is whether a placement may differ for it: what was asked for and is not
	// told would have kept work off a node, or on one.
	Hard bool
}

// Notes is everything that could not be told as it is, in the order in which it
// was first met.
type Notes struct {
	List []Note
	at   map[[2]string]int
}

// Add counts n more.
func (n *Notes) Add(note Note) {
	if note.Count == 0 {
		return
	}
	key := [2]string{note.What, note.Done}
	if i, ok := n.at[key]; ok {
		n.List[i].Count += note.Count
		return
	}
	if n.at == nil {
		n.at = map[[2]string]int{}
	}
	n.at[key] = len(n.List)
	n.List = append(n.List, note)
}

func (n *Notes) soft(what, done string) { n.Add(Note{Count: 1, What: what, Done: done}) }
func (n *Notes) hard(what, done string) { n.Add(Note{Count: 1, What: what, Done: done, Hard: true}) }

func (n *Notes) leave(what string) {
	n.Add(Note{Count: 1, What: what, Done: "left out", LeftOut: true})
}

// Hard lists the notes for which a placement may differ.
func (n *Notes) Hard() []Note {
	var list []Note
	for _, note := range n.List {
		if note.Hard {
			list = append(list, note)
		}
	}
	return list
}
