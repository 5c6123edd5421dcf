package checkedfile

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
)

func TestRead_ReturnsWrittenContent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "id")
	for _, text := range []string{"", "one line", "two\nlines\n", `{"A": 1}`} {
		if err := Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, checked, err := Read(path)
		if string(bytes.TrimSuffix(got, []byte("\n"))) != string(bytes.TrimSuffix([]byte(text), []byte("\n"))) || !checked || err != nil {
			t.Errorf("content %q, checked %v, error %v; want %q", got, checked, err, text)
		}
	}
	if _, _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file was read")
	}
}

// No damage leaves a file with a valid checksum and another content.
func TestDecode_FindsDamage(t *testing.T) {
	t.Parallel()
	const content = "KN7FQGUFMWMTUOO3Y6QZ2YPDHV\n"
	whole := Encode([]byte(content))
	for size := range whole {
		if got, checked, err := Decode(whole[:size]); err == nil && checked && string(got) != content {
			t.Errorf("cut at %d: content %q counts as checked", size, got)
		}
	}
	for bit := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		got, checked, err := Decode(b)
		if err == nil && checked && string(got) != content {
			t.Errorf("bit %d flipped: content %q counts as checked", bit, got)
		}
		// A line that is not a checksum belongs to the content, which differs then.
		if err == nil && !checked && string(got) == content {
			t.Errorf("bit %d flipped: damage disappeared", bit)
		}
	}
	if _, _, err := Decode([]byte("other" + string(whole))); !errors.Is(err, ErrChecksum) {
		t.Errorf("error %v, want ErrChecksum", err)
	}
	if got, checked, err := Decode([]byte("ID\n")); string(got) != "ID\n" || checked || err != nil {
		t.Errorf("a file of an earlier release: %q, %v, %v", got, checked, err)
	}
}
