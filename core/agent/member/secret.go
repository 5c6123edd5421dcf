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

// secretIn reads the cluster's secret, or makes one.
func secretIn(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the member's data directory: %w", err)
	}
	path := filepath.Join(dir, "secret")
	text, err := os.ReadFile(path)
	if err == nil {
		if secret := strings.TrimSpace(string(text)); secret != "" {
			return secret, nil
		}
		return "", fmt.Errorf("%s is empty: without it this is another cluster to the servers; remove the file if that is what you want", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var raw [24]byte
	_, _ = rand.Read(raw[:]) // it never fails
	secret := hex.EncodeToString(raw[:])
	return secret, atomicfile.Write(path, []byte(secret+"\n"), 0o600) // half a secret would be another one
}
