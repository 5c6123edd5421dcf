job "index" {
  type     = "batch"
  priority = 20

  group "work" {
    task "index" {
      driver = "exec"

      config {
        command = "sleep"
        args    = ["1h"]
      }

      resources {
        cpu    = 1500
        memory = 256
      }
    }
  }
}
