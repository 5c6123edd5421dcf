package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cede-scheduler/cede/core/internal/checkedfile"
)

// Format is the format of the directory that this release writes. It grows with each
// change that an earlier release would misread.
//
//	1  no version file; identity files without checksum
//	2  version file; checksums of identity files and of snapshot descriptions
const Format = 2

// A Version is the content of the version file. It lets a release refuse a directory of a
// later one, which it would misread or whose entries it could not apply.
type Version struct {
	Format  uint32 // of the directory; a directory without the file has format 1
	Cluster uint32 // highest version of the cluster that this server has applied; 0 if none
}

// ReadVersion reads the version file. It returns Format 1 if the file does not exist,
// and a *DamageError if it is damaged.
func ReadVersion(layout Layout) (v Version, err error) {
	b, checked, err := checkedfile.Read(layout.Version())
	if errors.Is(err, fs.ErrNotExist) {
		return Version{Format: 1}, nil
	}
	if err != nil && !errors.Is(err, checkedfile.ErrChecksum) {
		return v, err
	}
	if err == nil && !checked {
		err = errors.New("checksum is missing")
	}
	if err == nil {
		// A later format may add lines.
		_, err = fmt.Sscanf(string(b), "format %d\ncluster %d\n", &v.Format, &v.Cluster)
	}
	if err != nil {
		return v, &DamageError{Part: "version", Path: layout.Version(), Problem: "damaged", Remedy: RemedyVersion, Err: err}
	}
	return v, nil
}

// Write stores v durably.
func (v Version) Write(layout Layout) error {
	return checkedfile.Write(layout.Version(), fmt.Appendf(nil, "format %d\ncluster %d\n", v.Format, v.Cluster), 0o600)
}

// Check returns an error that wraps ErrNewer if this release must not open the directory.
// newest is the newest version of a cluster that the release supports; 0 accepts all.
func (v Version) Check(layout Layout, newest uint32) error {
	var problems []string
	if v.Format > Format {
		problems = append(problems, fmt.Sprintf("the directory has format %d, this release supports formats up to %d", v.Format, Format))
	}
	if newest > 0 && v.Cluster > newest {
		problems = append(problems, fmt.Sprintf("the cluster has version %d, this release supports versions up to %d", v.Cluster, newest))
	}
	if len(problems) == 0 {
		return nil
	}
	return &DamageError{Part: "data directory", Path: layout.Dir, Problem: strings.Join(problems, "; "), Remedy: RemedyNewer, Err: ErrNewer}
}
