job "shop" {
  datacenters = ["dc1"]
  type        = "service"
  priority    = 80
  node_pool   = "web"

  update {
    max_parallel = 1
    canary       = 1
  }
  reschedule {
    attempts  = 3
    unlimited = false
  }

  group "web" {
    count = 3
    network {
      mode = "bridge"
      port "http" {
        to = 80
      }
      port "grpc-api" {
        static = 9090
      }
    }
    service {
      name = "shop"
      port = "http"
      check {
        type     = "http"
        path     = "/health"
        interval = "10s"
      }
    }
    restart {
      attempts = 2
    }
    volume "data" {
      type   = "host"
      source = "data"
    }
    constraint {
      attribute = "${node.class}"
      value     = "large"
    }
    task "migrate" {
      driver = "docker"
      lifecycle {
        hook = "prestart"
      }
      resources {
        cpu = 4000
      }
    }
    task "web" {
      driver = "docker"
      user   = "nobody"
      config {
        image = "shop:${var_of_nobody}"
        ports = ["http"]
      }
      env {
        TOKEN = file("token")
      }
      artifact {
        source = "https://example.com/site.tar.gz"
      }
      template {
        data        = file("shop.tpl")
        destination = "local/shop.conf"
      }
      logs {
        max_files = 3
      }
      vault {
        policies = ["shop"]
      }
      volume_mount {
        volume      = "data"
        destination = "/data"
      }
      resources {
        cpu        = 500
        memory     = 256
        memory_max = 512
      }
    }
  }
}
