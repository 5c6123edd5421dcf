package importer

import (
	"testing"
	"testing/fstest"
)

// Raw files of the Google trace are all expected before the first one is read; the share
// would otherwise fall when the large ones follow the small ones.
func TestGoogle_ExpectsAllFiles(t *testing.T) {
	t.Parallel()
	var first *Progress
	src := Source{FS: fstest.MapFS{
		"machine_events/part-00000-of-00001.csv": {Data: []byte("0,1,0,p,0.5,0.5\n")},
		"task_events/part-00000-of-00500.csv":    {Data: []byte("0,,1,0,,0,u,0,9,0.1,0.1,0.0,0\n1000000,,1,0,1,1,u,0,9,0.1,0.1,0.0,0\n")},
	}}.Observe(func(p Progress) {
		if first == nil {
			first = &p
		}
	})
	_, _, err := Google(Options{}, src)
	if first == nil || first.Total != 83 {
		t.Errorf("first %+v, %v", first, err)
	}
}
