job "shop" {
  type     = "service"
  priority = 80

  group "work" {
    task "shop" {
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
