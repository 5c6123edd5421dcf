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
	return secret, replace(path, []byte(secret+"\n")) // half a secret would be another one
}

// replace writes a file whole or not at all, whatever happens.
func replace(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
