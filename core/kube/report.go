package kube

// A Note counts the occurrences of one thing that was not translated exactly.
type Note struct {
	Count    int
	Subject  string // plural noun phrase; Count of these
	Handling string // how they were translated instead
	// Skipped is true if Count counts pods that are not translated at all.
	Skipped bool
	// AffectsPlacement is true if a placement may differ from Kubernetes: a requirement
	// was dropped that restricts the nodes of a pod.
	AffectsPlacement bool
}

// A Report lists everything that was not translated exactly, in the order in which it
// first occurred. The zero value is ready to use.
type Report struct {
	List  []Note
	index map[[2]string]int // of List, by subject and handling
}

// Add adds the note's count to the note with the same subject and handling, or appends
// the note. It ignores a count of 0.
func (r *Report) Add(note Note) {
	if note.Count == 0 {
		return
	}
	key := [2]string{note.Subject, note.Handling}
	if i, ok := r.index[key]; ok {
		r.List[i].Count += note.Count
		return
	}
	if r.index == nil {
		r.index = map[[2]string]int{}
	}
	r.index[key] = len(r.List)
	r.List = append(r.List, note)
}

// info adds a note that does not affect placement, warn one that does.
func (r *Report) info(subject, handling string) {
	r.Add(Note{Count: 1, Subject: subject, Handling: handling})
}

func (r *Report) warn(subject, handling string) {
	r.Add(Note{Count: 1, Subject: subject, Handling: handling, AffectsPlacement: true})
}

// skip counts a pod that is left out.
func (r *Report) skip(subject string) {
	r.Add(Note{Count: 1, Subject: subject, Handling: "left out", Skipped: true})
}

// AffectingPlacement returns the notes that affect placement.
func (r *Report) AffectingPlacement() []Note {
	var list []Note
	for _, note := range r.List {
		if note.AffectsPlacement {
			list = append(list, note)
		}
	}
	return list
}
