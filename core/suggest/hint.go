package suggest

import "strings"

// validFields begins the remedy for a field that is similar to none.
const validFields = "valid fields: "

// DidYouMean returns a question that names the candidate closest to a mistyped name, or
// otherwise if none is close.
func DidYouMean(name string, candidates []string, otherwise string) string {
	if near := Nearest(name, candidates); near != "" {
		return Question(near)
	}
	return otherwise
}

// Question returns the question whether one of the names was meant.
func Question(names ...string) string { return "did you mean " + Or(names) + "?" }

// Or returns names as "a, b or c".
func Or(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// Field returns the remedy for an unknown field: the field that was probably meant, or the
// list of the valid ones.
func Field(name string, valid []string) string {
	return DidYouMean(name, valid, validFields+strings.Join(valid, ", "))
}

// AddField returns a remedy of Field with one more valid field.
func AddField(remedy, field string) string {
	list, ok := strings.CutPrefix(remedy, validFields)
	if !ok {
		return remedy
	}
	return validFields + list + ", " + field
}

// Lists remembers the lists of valid fields that a message contains already. The zero value
// is ready for use.
type Lists struct{ printed map[string]bool }

// Once returns a remedy, or "" for a list of valid fields that it has returned before.
func (l *Lists) Once(remedy string) string {
	if !strings.HasPrefix(remedy, validFields) {
		return remedy
	}
	if l.printed[remedy] {
		return ""
	}
	if l.printed == nil {
		l.printed = map[string]bool{}
	}
	l.printed[remedy] = true
	return remedy
}
