package process

import "runtime"

// startOnThread calls start on a thread of its own, which prepare may restrict, and
// returns its error. The thread ends when exited is closed, or at once if start fails.
//
// The kernel can end a process together with its parent, but treats the starting thread
// as the parent, so the thread must live as long as the process. It is never used for
// anything else, because restrictions cannot be undone.
func startOnThread(prepare, start func() error, exited <-chan struct{}) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		if isMainThread() {
			// It never ends, and its restrictions would be those of the host.
			result <- startOnThread(prepare, start, exited)
			runtime.UnlockOSThread()
			return
		}
		err := prepare()
		if err == nil {
			err = start()
		}
		result <- err
		if err == nil {
			<-exited
		}
	}()
	return <-result
}
