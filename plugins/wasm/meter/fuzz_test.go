package meter_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// FuzzInstrument passes arbitrary and nearly valid modules to Instrument: it must not panic
// or use excessive memory, and must satisfy checkValidity and checkBehaviour.
func FuzzInstrument(f *testing.F) {
	fixtures, err := filepath.Glob("testdata/*.wasm")
	if err != nil || len(fixtures) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, path := range fixtures {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for seed := range uint64(20) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
		f.Add(g.module())
	}
	f.Add(moduleWith(noLocals, []byte{0x00, 0xfd, 0x0c}))
	f.Fuzz(func(t *testing.T, module []byte) {
		m := checkValidity(t, module)
		if m == nil {
			return
		}
		if limit := 8*len(module) + 64<<10 + 1<<10; len(m.Code) > limit {
			t.Errorf("%d bytes became %d", len(module), len(m.Code))
		}
		if len(m.Imports) == 0 {
			checkBehaviour(t, module, m.Code, 3000)
		}
	})
}

// FuzzFunction is FuzzInstrument for the body of one function.
func FuzzFunction(f *testing.F) {
	for _, instructions := range [][]byte{
		{0x01},
		{0x03, 0x40, 0x0c, 0, 0x0b},
		{0x41, 3, 0x0e, 2, 0, 0, 0},
		{0x02, 0x40, 0x41, 1, 0x04, 0x40, 0x0c, 1, 0x05, 0x0f, 0x0b, 0x0b},
		{0x41, 0, 0x41, 0, 0x41, 9, 0xfc, 11, 0},
		{0x10, 0},
		{0x41, 0, 0x11, 0, 0},
		{0x41, 2, 0x40, 0, 0x1a, 0x3f, 0, 0x1a},
		{0x41, 0, 0xfd, 0, 0, 0, 0xfd, 0x80, 1, 0x1a},
		{0x00, 0xfd, 0x80, 0x02, 0x40, 0x0b},
		{0x00, 0x1c, 0x81, 0x00, 0x7f},
		{0xd0, 0x70, 0x41, 3, 0xfc, 15, 0, 0x1a},
	} {
		f.Add(instructions)
	}
	f.Fuzz(func(t *testing.T, instructions []byte) {
		module := moduleWith(noLocals, instructions)
		if m := checkValidity(t, module); m != nil {
			checkBehaviour(t, module, m.Code, 3000)
		}
	})
}
