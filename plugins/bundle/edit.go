package bundle

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// encodeOver returns the manifest as an edit of its previous text: unchanged parts keep
// their order and comments.
func (m *Manifest) encodeOver(old []byte) ([]byte, error) {
	fresh, err := m.Encode()
	if err != nil {
		return nil, err
	}
	var before, after yaml.Node
	if err := yaml.Unmarshal(old, &before); err != nil {
		return fresh, nil //nolint:nilerr // there is nothing to keep
	}
	if len(before.Content) == 0 {
		return fresh, nil
	}
	if err := yaml.Unmarshal(fresh, &after); err != nil {
		return nil, err
	}
	same, err := equivalent(&before, &after)
	if err != nil {
		return nil, err
	}
	if same {
		return old, nil
	}
	merge(before.Content[0], after.Content[0])
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&before); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// merge replaces the keys and values of to by those of from.
func merge(to, from *yaml.Node) {
	var kept []*yaml.Node
	for i := 0; i+1 < len(to.Content); i += 2 {
		key, value := to.Content[i], to.Content[i+1]
		if fresh := valueOf(from, key.Value); fresh != nil {
			kept = append(kept, key, replaceNode(value, fresh))
		}
	}
	for i := 0; i+1 < len(from.Content); i += 2 {
		if valueOf(to, from.Content[i].Value) == nil {
			kept = append(kept, from.Content[i], from.Content[i+1])
		}
	}
	to.Content = kept
}

// replaceNode returns old if both values are equal, otherwise fresh with the comments of
// old.
func replaceNode(old, fresh *yaml.Node) *yaml.Node {
	if same, err := equivalent(old, fresh); err == nil && same {
		return old
	}
	fresh.HeadComment, fresh.LineComment, fresh.FootComment = old.HeadComment, old.LineComment, old.FootComment
	return fresh
}

// valueOf returns the value of a key in a mapping, or nil.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// equivalent reports whether two nodes have the same value.
func equivalent(a, b *yaml.Node) (bool, error) {
	var texts [2][]byte
	for i, n := range []*yaml.Node{a, b} {
		var value any
		if err := n.Decode(&value); err != nil {
			return false, err
		}
		var err error
		if texts[i], err = yaml.Marshal(value); err != nil { // maps are sorted
			return false, err
		}
	}
	return bytes.Equal(texts[0], texts[1]), nil
}
