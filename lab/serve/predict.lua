-- predict.lua: requests for wrk: 20 points in, 50 functions of the network, 128 places out. Every
-- request has points and a seed of its own, so that nothing is there already.
local model = os.getenv("MODEL") or "mnp-rbf"
local threads = 0

function setup(thread)
   thread:set("number", threads)
   threads = threads + 1
end

local count = 0
function request()
   count = count + 1
   local seed = number * 1000000 + count
   local x, y = {}, {}
   for i = 1, 20 do
      x[i] = -2 + 4 * (i - 1) / 20 + 1e-6 * (seed % 65536)
      y[i] = math.sin(3 * x[i])
   end
   local body = string.format(
      '{"model":"%s","grid":[-2,2,128],"samples":50,"condition":"network","seed":%d,"context":{"x":[%s],"y":[%s]}}',
      model, seed, table.concat(x, ","), table.concat(y, ","))
   return wrk.format("POST", "/v1/predict", { ["Content-Type"] = "application/json" }, body)
end

-- One line at the end, for the script that started it.
function done(summary, latency)
   local bad = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status +
      summary.errors.timeout
   print(string.format("wrk %d %d %.6f %.6f %.6f", summary.requests, bad, summary.duration * 1e-6,
                       latency:percentile(50) * 1e-6, latency:percentile(99) * 1e-6))
end
