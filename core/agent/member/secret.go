package member

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cede-scheduler/cede/core/internal/atomicfile"
)

// secretIn reads the cluster secret from a folder, or creates one.
func secretIn(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("data directory of member: %w", err)
	}
	path := filepath.Join(dir, "secret")
	text, err := os.ReadFile(path)
	if err == nil {
		if secret := strings.TrimSpace(string(text)); secret != "" {
			return secret, nil
		}
		return "", fmt.Errorf("secret file %s is empty; to register as a new cluster, remove the file", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var raw [24]byte
	_, _ = rand.Read(raw[:]) // it never returns an error
	secret := hex.EncodeToString(raw[:])
	return secret, atomicfile.Write(path, []byte(secret+"\n"), 0o600) // a partial secret would be another identity
}
