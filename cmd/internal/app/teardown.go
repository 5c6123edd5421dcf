package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// teardown is a stack of functions that stop the started components in reverse order.
type teardown struct {
	mu    sync.Mutex
	steps []step
}

type step struct {
	name string
	undo func(context.Context) error
}

func (t *teardown) push(name string, undo func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, step{name, undo})
}

// run calls all functions in reverse order, once. A function that fails does not prevent
// the others.
func (t *teardown) run(ctx context.Context) error {
	t.mu.Lock()
	steps := t.steps
	t.steps = nil
	t.mu.Unlock()
	var errs []error
	for _, s := range slices.Backward(steps) {
		if err := s.undo(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}
