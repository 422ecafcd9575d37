-- Sends one POST request again and again, and prints the result as one line of JSON.
wrk.method = "POST"
wrk.body = io.open(os.getenv("BENCH_BODY"), "rb"):read("*a")
wrk.headers["content-type"] = "application/json"
if os.getenv("BENCH_KEY") ~= "" then
  wrk.headers["authorization"] = "Bearer " .. os.getenv("BENCH_KEY")
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"refused":%d,"failed":%d,"micros":%d,"p50Micros":%d,"p99Micros":%d}\n',
    summary.requests, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    summary.duration, latency:percentile(50), latency:percentile(99)))
end
