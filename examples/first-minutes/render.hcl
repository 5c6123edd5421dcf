job "render" {
  type     = "batch"
  priority = 20

  group "work" {
    task "render" {
      driver = "exec"

      config {
        command = "sleep"
        args    = ["1h"]
      }

      resources {
        cpu    = 2500
        memory = 256
      }
    }
  }
}
