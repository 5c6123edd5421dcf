package member

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cede-scheduler/cede/core/internal/checkedfile"
)

// secretIn reads the cluster secret from a folder, or creates one.
func secretIn(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("data directory of member: %w", err)
	}
	path := filepath.Join(dir, "secret")
	text, checked, err := checkedfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		var raw [24]byte
		_, _ = rand.Read(raw[:]) // it never returns an error
		secret := hex.EncodeToString(raw[:])
		return secret, checkedfile.Write(path, []byte(secret), 0o600) // a partial secret would be another identity
	}
	secret := strings.TrimSpace(string(text))
	if err == nil && !secretText.MatchString(secret) {
		err = errors.New("not 48 hexadecimal digits")
	}
	if err != nil {
		return "", fmt.Errorf("invalid secret file %s: %w; to register as a new cluster, remove the file", path, err)
	}
	if !checked { // written by an earlier release
		err = checkedfile.Write(path, []byte(secret), 0o600)
	}
	return secret, err
}

// secretText matches a secret.
var secretText = regexp.MustCompile(`^[0-9a-f]{48}$`)
