# A job: groups of equal instances that should run. cede help jobs describes
# every field.
job "example" {
  type     = "service" # or batch: ends by itself; system, sysbatch: once on every node
  priority = 50        # higher goes first, and may evict lower

  # Where it may run.
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }

  group "web" {
    count = 2

    task "server" {
      driver = "exec"

      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }

      resources {
        cpu    = 100 # MHz, or "500m" of a core
        memory = 64  # MiB, or "1Gi"
      }

      kill_timeout = "5s" # how long it may take to stop when it is evicted
    }
  }
}
